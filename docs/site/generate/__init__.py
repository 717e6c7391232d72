"""Pages that are made from what the product says about itself, so that they cannot say anything else."""
