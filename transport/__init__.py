"""Ways to reach a target, each its own module with the methods of controlregs.target.Target, which none imports."""
