#!/usr/bin/env bash
# All lints, each with its time; needs neither a build nor a network.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failed=0
for lint in includes sizes words comments format pages names types; do
  if output=$(python3 -B "tests/lint/check_$lint.py" . 2>&1); then
    echo "lint $lint: ${output:-ok}"
  else
    failed=1
    printf 'lint %s: failed\n%s\n' "$lint" "$output"
  fi
done
exit $failed
