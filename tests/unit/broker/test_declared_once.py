"""A setting that coordinators decide by is declared in one place; everything else follows (docs/decisions/0032)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DECLARED = 'group_share_made_up_ms: int = setting(7_000, "Made up by a test.", low=10, high=90_000, is_of_group=True)'
ELSEWHERE = f"""
import sys
import types
from importlib.util import find_spec
from pathlib import Path

NAME = "groupkeeper.coordinator.kernel.settings"
source = Path(find_spec(NAME).origin).read_text()
place = "    group_streams_session_timeout_ms: int"
assert source.count(place) == 1
module = sys.modules[NAME] = types.ModuleType(NAME)
exec(source.replace(place, '    {DECLARED}' + chr(10) + place), module.__dict__)

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.described import describe_broker, describe_group
from groupkeeper.broker.settings.group_overrides import GroupConfig
from groupkeeper.broker.settings.group_settings import coordinator_settings
from groupkeeper.broker.settings.table import InvalidSetting
from groupkeeper.coordinator.coordinator import Coordinator
from tools.broker_settings import document

lines = [line for line in document().splitlines() if "Made up by a test." in line]
assert lines == [
    "| `group.share.made.up.ms` | int | `7000` | 10 to 90000 | Made up by a test. |",
    "| `share.made.up.ms` | int | `7000` | at least 10 | Made up by a test. |",
], lines

config = Config.from_texts({{"group.share.made.up.ms": "8000"}})
told = {{one.name: one for one in describe_broker(config)}}
assert (told["group.share.made.up.ms"].value, told["group.share.made.up.ms"].doc) == ("8000", "Made up by a test.")
for wrong in ("9", "90001", "x"):
    try:
        Config.from_texts({{"group.share.made.up.ms": wrong}})
    except InvalidSetting:
        continue
    raise AssertionError(wrong)

group = GroupConfig({{"share.made.up.ms": "9000"}}, config, is_new=True)
told = {{one.name: one for one in describe_group(group, config)}}
assert [value for _, value, _ in told["share.made.up.ms"].synonyms] == ["9000", "8000", "7000"]
assert len(told) == 18

coordinator = Coordinator(coordinator_settings(config))
assert coordinator.settings_of("any").group_share_made_up_ms == 8000
coordinator.apply(module.SettingsChange({{"own": group.effective}}))
assert coordinator.settings_of("own").group_share_made_up_ms == 9000
"""


def test_a_new_setting_is_found_everywhere() -> None:
    ran = subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
