"""Human review of a report: queue and sample of pairs, terminal display, verdicts, precision."""
