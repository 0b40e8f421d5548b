#!/bin/sh
# collect.sh PROGRAM FOLDER: copies a program to FOLDER/bin and those of its
# libraries that no Debian package has to FOLDER/lib, by the names that it loads.
set -eu
program=$1 folder=$2
mkdir -p "$folder/bin" "$folder/lib"
install -s "$program" "$folder/bin/"
ldd "$program" | while read -r name _ file _; do
  case $(realpath -- "${file:-/}") in
    / | /usr/lib/* | /lib/*) ;;
    *) cp -L -- "$file" "$folder/lib/$name" ;;
  esac
done
