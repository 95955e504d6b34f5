"""What is known of the systems that switch tasks: real-time systems, and Linux."""
