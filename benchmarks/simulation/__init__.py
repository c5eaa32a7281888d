"""A machine of many cores, simulated on few: workers that sleep, in time that goes slower."""
