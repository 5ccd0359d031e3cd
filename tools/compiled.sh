#!/bin/sh
# Usage: tools/compiled.sh PYTHON     (`make compiled`; PYTHON: that of the environment with requirements/dev.txt)
#
# The compiled wheel in build/compiled, an environment of its own, unless it is there for these sources. What else it needs
# it takes from PYTHON's. Status 3: there is no C compiler.
set -eu
made=build/compiled/.made
if [ -e "$made" ] && [ -z "$(find src/groupkeeper compiled.txt setup.py pyproject.toml requirements/dev.txt -newer "$made" \
    -type f ! -name '*.pyc')" ]; then
  exit 0
fi
rm -rf build/compiled build/compiled-wheel build/lib.* build/bdist.*
if ! command -v "${CC:-cc}" >/dev/null; then
  echo "compiled: no C compiler (Debian: apt install gcc libc6-dev): the tests of the compiled build will be skipped"
  exit 3
fi
echo "compiled: making the wheel"
pip="$1 -m pip --disable-pip-version-check --quiet"
GROUPKEEPER_COMPILE=1 $pip wheel --no-build-isolation --no-deps --wheel-dir build/compiled-wheel .
"$1" -m venv --without-pip build/compiled
$pip --python build/compiled/bin/python install --no-deps build/compiled-wheel/*.whl
where='import sysconfig; print(sysconfig.get_path("purelib"))'
"$1" -c "$where" >"$(build/compiled/bin/python -c "$where")/others.pth"
touch "$made"
echo "compiled: $(build/compiled/bin/groupkeeper --version)"
