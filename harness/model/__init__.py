"""What things are: frozen values and pure rules. No I/O."""
