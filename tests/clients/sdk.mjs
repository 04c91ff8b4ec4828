// The official TypeScript SDK, version 1: node sdk.mjs URL, or node sdk.mjs PROGRAM ARGUMENT...
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { smoke } from './smoke.mjs';

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);
await smoke(client, (name, args, onprogress) => client.callTool({ name, arguments: args }, undefined, { onprogress }));
await client.close();
