#!/bin/sh
# Says 1 to each line that holds a kind word, else 0.
while read -r answer; do
  case $answer in
    *kind* | *fresh* | *warm* | *good* | *happy*) echo 1 ;;
    *) echo 0 ;;
  esac
done
