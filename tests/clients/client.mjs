// The official TypeScript client, version 2: node client.mjs auto|legacy URL, or auto|legacy PROGRAM ARGUMENT...
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { smoke } from './smoke.mjs';

const [mode, target, ...args] = process.argv.slice(2);
const transport = target.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
await client.connect(transport);
await smoke(client, (name, args, onprogress) => client.callTool({ name, arguments: args }, { onprogress }));
await client.close();
