"""Drivers of engines: what ``--on dask``, ``slurm`` and ``ray`` start.

The directory of a sweep is the contract. ``points.jsonl`` says which runs there are to be; a run is
done when ``runs/ID.json`` is there, whoever has done it. A driver moves IDs to machines, where
``afar point DIR ID...`` does what is not done yet, and looks at the directory: what an engine says
of its tasks is a hint, and never believed.
"""
