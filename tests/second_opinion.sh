#!/bin/sh
# Runs golden tests on another golden folder, or says that it is not there:
# second_opinion.sh FOLDER PROGRAM [ARGUMENT..]. TROUPE_SHARED, where set, names
# the folder that holds it, as it does for the tests themselves.
folder=${TROUPE_SHARED:+$TROUPE_SHARED/golden}
folder=${folder:-$1}
shift
if [ ! -d "$folder" ]; then
  echo "skipped: no golden data at $folder"
  exit 0
fi
exec "$@"
