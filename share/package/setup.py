# SPDX-License-Identifier: MIT
"""Keeps what setuptools makes on the way (build/, giltracer.egg-info) out of this folder."""
import atexit
import shutil
import tempfile

from setuptools import setup

scratch = tempfile.mkdtemp(prefix="giltracer-package-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
setup(options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}})
