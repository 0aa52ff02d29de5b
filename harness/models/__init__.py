"""Language models behind the `Model` port; each is imported by the composition root alone."""
