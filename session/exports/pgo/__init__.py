"""What ran, in the forms that compilers and linkers take."""
