"""What several commands need: arguments, facts and programs that they load."""
