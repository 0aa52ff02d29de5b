"""The scripted model that real agent programs are tried against, and the claims that they are tried on."""
