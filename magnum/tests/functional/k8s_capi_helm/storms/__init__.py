# SPDX-License-Identifier: Apache-2.0
"""Many requests at once, at two conductors with three workers each behind a real RabbitMQ."""
