"""Generated from proto/msbridge/_pb by proto/generate.py."""
