"""One file for each way in which programs talk to a model: from a request to an `Ask`, from a reply to bytes."""
