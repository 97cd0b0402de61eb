"""Why a training died: known failures and their signs."""
