"""The official command lines beside ours: the same arguments, the same words."""

import re
import subprocess
import sys
from pathlib import Path

from tools.apache_kafka import run_tool


def ours(tool: str, bootstrap_servers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Our command `kafka-TOOL`."""
    command = str(Path(sys.executable).with_name(f"kafka-{tool}"))
    return subprocess.run(
        [command, "--bootstrap-server", bootstrap_servers, *arguments], capture_output=True, text=True, timeout=50
    )


def compare(tool: str, bootstrap_servers: str, *arguments: str) -> None:
    """The newest official tool and ours print the same, and end with the same status."""
    theirs = run_tool(tool, "--bootstrap-server", bootstrap_servers, *arguments)
    own = ours(tool, bootstrap_servers, *arguments)
    assert own.returncode == theirs.returncode
    assert told(own.stdout) == told(theirs.stdout)
    assert told(own.stderr) == told(theirs.stderr)


def told(text: str) -> list[str]:
    """What a person is told, in any order: without stack traces, log lines and Java's class names."""
    lines = []
    for line in text.splitlines():
        if re.match(r"\s+at |\s+\.\.\. \d+ more|Caused by:|\[\d{4}-|(java|org)\.[\w.$]+(Exception|Error)", line):
            continue
        if re.match(r" \(org\.[\w.]+\)$", line):  # the end of a log line
            continue
        line = re.sub(r"(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error): ", "", line)
        line = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", line)
        if line.strip():
            lines.append(line.rstrip())
    return sorted(lines)
