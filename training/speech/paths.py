"""Lets the scripts of this folder import training/shared."""

import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
