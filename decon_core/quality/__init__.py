"""Whether results can be trusted: self-tests, damaged files, what each detector can see."""
