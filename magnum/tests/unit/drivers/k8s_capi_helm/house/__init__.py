# SPDX-License-Identifier: Apache-2.0
"""The laws of the house as functions: each reads sources with ast and lists what breaks it.

``test_house.py`` applies them to the driver, the sandbox and the tests; the modules
``test_house_*.py`` show for each law what it allows and what it refuses.
"""
