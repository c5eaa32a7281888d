"""How benchmarks measure: the machine, servers as processes, engines that take turns."""
