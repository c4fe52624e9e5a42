# SPDX-License-Identifier: Apache-2.0
"""What only the database shows that operators have: MariaDB, strict, with Magnum's own tables."""
