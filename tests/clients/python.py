"""The official Python client against kpty: python.py auto|legacy URL, or python.py auto|legacy PROGRAM ARGUMENT..."""

import asyncio
import json
import re
import sys

from mcp import Client, StdioServerParameters, stdio_client

TOOLS = ["term_run", "term_type", "term_look", "term_wait", "term_sessions"]


def answer(result):
    return json.loads(result.content[-1].text)


async def main(mode, target):
    told = []

    async def progress(value, total, message):
        told.append(value)

    is_url = target[0].startswith("http")
    server = target[0] if is_url else stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS, tools
        assert tools[2].annotations.read_only_hint is True, tools[2].annotations
        ran = await client.call_tool("term_run", {"command": "echo $((6 * 7)); false"})
        assert re.match(r"exit 1 · cmd_\d+\n42\n", ran.content[-1].text + "\n"), ran
        created = answer(await client.call_tool("k_pty", {"action": "create", "shell": "/bin/bash"}))
        session = created["session_id"]
        talk = {"action": "talk", "session_id": session, "command": "sleep 6; echo hi"}
        talked = await client.call_tool("k_pty", talk, progress_callback=progress)
        assert talked.is_error is False and talked.structured_content is None, talked
        assert answer(talked)["output"] == "hi", talked
        assert told and told == sorted(set(told)), told
        refused = await client.call_tool("k_pty_view", {"action": "kill", "session_id": session})
        assert refused.is_error and "only looks" in answer(refused)["message"], refused
        looked = await client.call_tool("k_pty_view", {"action": "commands", "session_id": session})
        assert answer(looked)["ok"], looked
        killed = await client.call_tool("k_pty", {"action": "kill", "session_id": session})
        assert answer(killed)["ok"], killed


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2:]), 60))
