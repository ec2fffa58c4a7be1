"""Human review of a report: queue and sample, terminal display, verdicts, precision."""
