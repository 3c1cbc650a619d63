"""What a client of CAMEL expects of a tool server: `calls` through its runtime class, `wire` byte by byte."""
