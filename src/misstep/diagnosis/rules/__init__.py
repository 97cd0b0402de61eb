"""Why a training does not learn, one rule for each cause."""
