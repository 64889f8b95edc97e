"""Agreement of backends: runs of one scenario (`run`) and figures with tests (`outcome`)."""
