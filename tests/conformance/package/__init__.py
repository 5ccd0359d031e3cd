"""The package as it is published: installed, typed, its documentation as a site. What it does is tested elsewhere."""
