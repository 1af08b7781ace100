import { spawnSync } from 'node:child_process'

const TRIED = ['--net', '--mount', '--pid', '--fork', 'mount', '-t', 'tmpfs', 'none', '/mnt']
/** Whether a process can have namespaces of its own without a container engine: only root may make them. */
export const hasNamespaces = (): boolean => process.getuid?.() === 0 && spawnSync('unshare', TRIED).status === 0
