"""`groupkeeper broker` as a process."""

import re
import subprocess
import sys
from pathlib import Path

READY = re.compile(r"groupkeeper broker ([\d,]+)(?: \(compiled\))? is ready on (\S+)\n")
MAIN = "import sys; from groupkeeper.cli.main import main; sys.exit(main(['broker', *sys.argv[1:]]))"


class Started:
    """A running `groupkeeper broker` and where it is."""

    def __init__(self, *arguments: str, directory: Path, descriptors: int | None = None) -> None:
        """`descriptors` is the hard limit of open files."""
        self.errors_path = directory / "errors.txt"
        limited = [] if descriptors is None else ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
        with self.errors_path.open("w") as errors:
            self.process = subprocess.Popen(
                [*limited, sys.executable, "-c", MAIN, *arguments],
                cwd=directory,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None
        ready = READY.fullmatch(self.process.stdout.readline())
        assert ready is not None, self.errors
        self.node_ids = [int(one) for one in ready[1].split(",")]
        self.address = ready[2]

    @property
    def errors(self) -> str:
        return self.errors_path.read_text()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(40)


class Begin:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.running: list[Started] = []

    def __call__(self, *arguments: str, descriptors: int | None = None) -> Started:
        self.running.append(Started(*arguments, directory=self.directory, descriptors=descriptors))
        return self.running[-1]

    def fail(self, *arguments: str, status: int = 1) -> str:
        """Runs a command that must not start; what its last line of errors says, the only one but for the usage."""
        command = [sys.executable, "-c", MAIN, *arguments]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, timeout=50, check=False)
        assert (done.returncode, done.stdout) == (status, "")
        *usage, last = done.stderr.splitlines()
        front = "groupkeeper broker: error: " if status == 2 else "groupkeeper broker: "
        assert (len(usage), last.startswith(front)) == (int(status == 2), True)
        return last.removeprefix(front)
