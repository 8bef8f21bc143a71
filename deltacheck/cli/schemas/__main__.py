"""Write the schemas anew."""

from deltacheck.cli.schemas import write

write()
