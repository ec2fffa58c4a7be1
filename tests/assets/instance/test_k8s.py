"""The manifest in deploy/k8s: objects and settings of the run launcher, by their schemas."""

from pathlib import Path

import pytest
import yaml
from dagster import DagsterInvalidConfigError
from dagster._config import resolve_to_config_type, validate_config
from dagster._core.instance.config import dagster_instance_config_schema

MANIFEST = Path(__file__).parents[3] / "deploy/k8s/decon.yaml"
KINDS = ["ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment"]


def objects():
    return {one["kind"]: one for one in yaml.safe_load_all(MANIFEST.read_text())}


def settings():
    return yaml.safe_load(objects()["ConfigMap"]["data"]["dagster.yaml"])


def validated(schema, value):
    result = validate_config(resolve_to_config_type(schema), value)
    if not result.success:
        raise DagsterInvalidConfigError("not valid", result.errors, value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_fits_its_schema(kind):
    import kubernetes  # here, not in each process that looks for tests: it takes a second
    from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict

    model, found = getattr(kubernetes.client, f"V1{kind}"), objects()[kind]
    k8s_model_from_dict(model, k8s_snake_case_dict(model, found))
    with pytest.raises(Exception, match="metadatum"):
        k8s_snake_case_dict(model, {**found, "metadatum": {}})


def test_the_settings_of_the_instance_and_the_launcher_fit_their_schemas():
    from dagster_k8s import K8sRunLauncher

    found = settings()
    validated(dagster_instance_config_schema(), found)
    launcher = found["run_launcher"]["config"]
    validated(K8sRunLauncher.config_type(), launcher)
    with pytest.raises(DagsterInvalidConfigError):
        validated(K8sRunLauncher.config_type(), {**launcher, "job_picture": "x"})


def test_runs_see_what_the_daemon_sees():
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    launcher = settings()["run_launcher"]["config"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert launcher["job_image"] == container["image"]
    assert launcher["dagster_home"] == environment["DAGSTER_HOME"]
    assert launcher["env_vars"] == [f"DECON_CONFIG={environment['DECON_CONFIG']}"]
    assert launcher["volume_mounts"][0] in container["volumeMounts"]
    assert launcher["volumes"][0] in pod["volumes"]
    assert launcher["instance_config_map"] == objects()["ConfigMap"]["metadata"]["name"]
