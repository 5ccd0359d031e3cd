"""A process that runs actors of a story, controlled by lines of its input.

    python -m tests.rig.actors.worker FOLDER NAME ACTOR …

`pause`: all actors come to rest with nothing under way, then `paused` is printed; `resume`; `stop`: they end, then
`stopped` is printed. What they did stands in FOLDER/NAME.facts. The end of the input stops it, too.
"""

import json
import os
import random
import sys
from pathlib import Path

from tests.rig.actors.committing import CommitterThread, CutterThread, ReaderThread
from tests.rig.actors.consuming import ConsumerThread
from tests.rig.actors.others import AiokafkaThread, JavaThread, KafkaPythonThread
from tests.rig.actors.performing import PATIENCE_S, Gate, Performer
from tests.rig.actors.producing import ProducerThread
from tests.rig.actors.sharing import SharerThread
from tests.rig.actors.streaming import StreamerThread
from tests.rig.actors.upheaval import GrowerThread, OnlookerThread, PhoenixThread
from tests.rig.facts import Notebook, Trouble, now
from tests.rig.story import (
    Actor,
    Committer,
    Consumer,
    Cutter,
    Grower,
    Onlooker,
    Phoenix,
    Producer,
    Reader,
    Sharer,
    Sleeper,
    Story,
    Streamer,
)

NICE = 10
SHARES = Path("/proc/self/autogroup")

LIBRARIES = {
    "confluent": ConsumerThread,
    "kafka-python": KafkaPythonThread,
    "aiokafka": AiokafkaThread,
    "java": JavaThread,
}


def performer(actor: Actor, gate: Gate, notebook: Notebook, servers: dict[str, str], seed: int) -> Performer:
    rng = random.Random(f"{seed}:{actor.name}")
    match actor:
        case Producer():
            return ProducerThread(actor, gate, notebook, servers, rng)
        case Consumer():
            return LIBRARIES[actor.library](actor, gate, notebook, servers, rng)
        case Committer():
            return CommitterThread(actor, gate, notebook, servers, rng)
        case Sleeper():
            raise AssertionError("who sleeps does nothing")
        case Reader():
            return ReaderThread(actor, gate, notebook, servers, rng)
        case Cutter():
            return CutterThread(actor, gate, notebook, servers, rng)
        case Onlooker():
            return OnlookerThread(actor, gate, notebook, servers, rng)
        case Grower():
            return GrowerThread(actor, gate, notebook, servers, rng)
        case Sharer():
            return SharerThread(actor, gate, notebook, servers, rng)
        case Streamer():
            return StreamerThread(actor, gate, notebook, servers, rng)
        case Phoenix():
            return PhoenixThread(actor, gate, notebook, servers, rng)


def main(folder: Path, name: str, actors: list[str]) -> int:
    os.nice(NICE)  # hundreds of threads: brokers, which have one or a few, go first
    if SHARES.exists():  # the kernel shares out the processors by sessions, and each worker has one
        SHARES.write_text(str(NICE))
    story = Story.load(folder / "story.json")
    servers = json.loads((folder / "servers.json").read_text())
    notebook, gate = Notebook(folder / f"{name}.facts"), Gate()
    threads = [
        performer(actor, gate, notebook, servers, story.seed) for actor in story.actors if actor.name in set(actors)
    ]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        match line.strip():
            case "pause":
                gate.close()
                for restless in gate.wait_for_rest(threads):
                    notebook.write(Trouble(restless, "it goes on while all should rest", now()))
                notebook.flush()
                print("paused", flush=True)
            case "resume":
                gate.open()
            case "stop":
                break
    gate.end()
    for thread in threads:
        thread.join(PATIENCE_S)
    notebook.flush()
    print("stopped", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
