"""Ways to reach a target. Each has the methods of `controlregs.target.Target`, which none of them imports."""
