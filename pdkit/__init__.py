"""May these serving-benchmark numbers be believed, and if so, what do they say?"""

__version__ = "0.1.0"
