"""The platform in the name of a wheel that has machine code; pyproject.toml has everything else."""

import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

_MACHINE_CODE = Path(__file__).parent / "decon_core/kernels/compiled"


class Wheel(bdist_wheel):
    """Without machine code the wheel is for any platform: kernels are compiled where they run."""

    def finalize_options(self) -> None:
        if any(_MACHINE_CODE.glob("*/*.nb[ci]")):
            self.plat_name = sysconfig.get_platform()
        super().finalize_options()


setup(cmdclass={"bdist_wheel": Wheel})
