"""The asset `scorecard` with its job, and `decon-assets scorecard`."""

from decon_assets.features.scorecard.asset import scorecard, scorecard_job

__all__ = ["scorecard", "scorecard_job"]
