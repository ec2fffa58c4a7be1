"""Whether results can be trusted: canaries, damaged files, what each detector can see."""
