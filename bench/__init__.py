"""Measurements of speed and memory: stages of a scan, full scans, and other tools."""
