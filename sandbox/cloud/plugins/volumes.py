# SPDX-License-Identifier: Apache-2.0
"""Simulated storage of Cinder: a volume is a record without data.

Types, quotas, attachments and scheduling are Cinder's own.
https://docs.openstack.org/cinder/latest/contributor/drivers.html
"""

from typing import Any

from cinder import interface
from cinder.volume import driver


def _done(_driver: Any, *_args: Any, **_kwargs: Any) -> None:
    """What the back end is asked to do succeeds."""


@interface.volumedriver
class Driver(driver.VolumeDriver):  # type: ignore[misc]
    """A back end for which everything succeeds at once."""

    VERSION = "1"
    CI_WIKI_NAME = "none"

    do_setup = _done
    check_for_setup_error = _done
    create_volume = _done
    create_volume_from_snapshot = _done
    create_cloned_volume = _done
    delete_volume = _done
    extend_volume = _done
    create_snapshot = _done
    delete_snapshot = _done
    ensure_export = _done
    create_export = _done
    remove_export = _done
    terminate_connection = _done
    create_export_snapshot = _done
    remove_export_snapshot = _done
    copy_image_to_volume = _done
    copy_volume_to_image = _done

    def clone_image(self, *_args: Any, **_kwargs: Any) -> tuple[dict[str, Any], bool]:
        """Claim that the back end has cloned the image, so that Cinder copies no bytes."""
        return {}, True

    def initialize_connection(self, volume: Any, _connector: Any, **_kwargs: Any) -> dict[str, Any]:
        """The connection that Nova's fake driver understands."""
        return {
            "driver_volume_type": "fake",
            "data": {"volume_id": volume.id, "access_mode": "rw"},
        }

    @staticmethod
    def get_driver_options() -> list[Any]:
        """No options beyond Cinder's own."""
        return []

    def _update_volume_stats(self) -> None:
        pool = {
            "pool_name": "sandbox",
            "total_capacity_gb": 10000,
            "free_capacity_gb": 9000,
            "allocated_capacity_gb": 0,
            "reserved_percentage": 0,
            "multiattach": True,
            "thin_provisioning_support": True,
            "max_over_subscription_ratio": "20",
            "QoS_support": False,
        }
        self._stats = {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name"),
            "vendor_name": "none",
            "driver_version": self.VERSION,
            "storage_protocol": "fake",
            "pools": [pool],
        }
