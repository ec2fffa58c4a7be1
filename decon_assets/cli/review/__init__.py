"""`decon-assets review`: judge matches by hand, and measure precision from the verdicts."""
