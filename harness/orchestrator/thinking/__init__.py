"""What a model is asked, and what becomes of its answers: functions over the `Model` port."""
