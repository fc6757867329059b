"""JupyterLab for this chapter: opens at its first section, asks the network for nothing, saves clean notebooks."""

import sys
import warnings
from pathlib import Path

here = Path(__file__).resolve().parent
root = here.parent.parent
sys.path.insert(0, str(root))

from tools.notebooks import clean_before_save  # noqa: E402  (found through the line above)

c = get_config()  # noqa: F821  (JupyterLab's own)
c.ServerApp.root_dir = str(root)
c.LabApp.default_url = "/lab/tree/chapters/8_0_design_problem.ipynb"
c.LabApp.app_settings_dir = str(here)
c.LabApp.user_settings_dir = str(root / ".lab-user" / "settings")
c.LabApp.workspaces_dir = str(root / ".lab-user" / "workspaces")
c.LabApp.extension_manager = "readonly"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
# The pairing derives a class of its own and so sets the hook twice.
warnings.filterwarnings("ignore", message="Overriding existing pre_save_hook")
c.FileContentsManager.pre_save_hook = clean_before_save
# The paired scripts are hidden, not locked: saving a notebook still writes its script.
c.ContentsManager.hide_globs = ["8_*.py", "ex_*.py", "__pycache__", "*.pyc"]
