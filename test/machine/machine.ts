/**
 * A Debian with systemd in a virtual machine, as somebody has it who is about to install the service: Node, sudo, and an SSH server that
 * lets `pi@raspberrypi.local` in. Knows nothing of the service.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { cleanEnvironment, findFreePort, install, makeFolder, waitUntil } from '../postgres/processes.ts'
import { VolatileDisk } from './disk.ts'

const debian = 'trixie'
const diskBytes = 3 * 2 ** 30
/** Where the disk, its kernel and the keys are kept between runs. */
const images = join(import.meta.dirname, 'dist')

const packages = [
  'systemd,systemd-sysv,libnss-systemd,dbus,udev,kmod,e2fsprogs,linux-image-cloud-amd64,initramfs-tools',
  'openssh-server,sudo,curl,jq,logrotate,nodejs',
]

const files: Readonly<Record<string, string>> = {
  'etc/hostname': 'raspberrypi\n',
  'etc/hosts': '127.0.0.1 localhost\n127.0.1.1 raspberrypi\n',
  'etc/fstab': '/dev/vda / ext4 errors=remount-ro 0 1\n',
  'etc/sudoers.d/pi': 'pi ALL=(ALL) NOPASSWD: ALL\n',
  'etc/systemd/network/eth0.network':
    '[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n',
}

function runOrThrow(command: string, ...args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Makes the disk's first content, if it is not there yet; takes a minute. */
function makeImage(): void {
  if (existsSync(join(images, 'disk'))) return
  mkdirSync(images, { recursive: true })
  const folder = mkdtempSync(join(tmpdir(), 'petstore-debian-'))
  try {
    const rootFolder = join(folder, 'root')
    const without = '--dpkgopt=path-exclude=/usr/share/{doc,man,locale}/*'
    const options = ['--mode=root', '--variant=minbase', `--include=${packages.join()}`, without]
    runOrThrow('mmdebstrap', ...options, debian, rootFolder, 'http://deb.debian.org/debian')
    for (const [name, text] of Object.entries(files)) writeFileSync(join(rootFolder, name), text)
    runOrThrow('chroot', rootFolder, 'useradd', '--create-home', '--shell', '/bin/bash', 'pi')
    runOrThrow('chroot', rootFolder, 'systemctl', 'enable', 'systemd-networkd', 'ssh')
    runOrThrow('chroot', rootFolder, 'ssh-keygen', '-A')
    rmSync(join(images, 'key'), { force: true })
    runOrThrow('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', join(images, 'key'))
    mkdirSync(join(rootFolder, 'home/pi/.ssh'))
    writeFileSync(join(rootFolder, 'home/pi/.ssh/authorized_keys'), readFileSync(join(images, 'key.pub')))
    runOrThrow('chroot', rootFolder, 'chown', '-R', 'pi:pi', '/home/pi/.ssh')
    for (const name of ['vmlinuz', 'initrd.img']) {
      const file = readdirSync(join(rootFolder, 'boot')).find((entry) => entry.startsWith(`${name}-`)) ?? ''
      runOrThrow('cp', join(rootFolder, 'boot', file), join(images, name))
    }
    const image = join(folder, 'disk')
    runOrThrow('mke2fs', '-q', '-t', 'ext4', '-d', rootFolder, image, String(diskBytes / 1024))
    runOrThrow('cp', '--sparse=always', image, join(images, 'disk.part'))
    renameSync(join(images, 'disk.part'), join(images, 'disk'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface Ran {
  readonly code: number | null
  /** Standard output and error. */
  readonly output: string
}

async function orThrow(what: string, running: Promise<Ran>): Promise<string> {
  const { code, output } = await running
  if (code !== 0) throw new Error(`${what}: exit code ${code}\n${output}`)
  return output
}

export interface Machine {
  /** Port 3000 of the machine, on every address but its loopback. */
  readonly url: string
  /** Resolves when it lets `pi` in. */
  start(): Promise<void>
  /** The power fails. What the disk was not told to flush is lost, but for the sectors that `isKept` says. */
  cut(isKept: () => boolean): Promise<void>
  /** Runs a command as `pi`, and gives what it printed. Rejects when it fails. */
  run(command: string): Promise<string>
  /** Runs a command as `pi`, whatever its outcome. */
  attempt(command: string): Promise<Ran>
  /** Runs a command of a document in the project, where `ssh` and `scp` reach this machine as `pi@raspberrypi.local`. */
  runAtHome(command: string): Promise<string>
  /** Boots again in order. Resolves when it lets `pi` in again. */
  reboot(): Promise<void>
}

/** A machine that is off, as it was delivered. It ends with this process. */
export async function makeMachine(project: string): Promise<Machine> {
  install({ 'qemu-system-x86': '/usr/bin/qemu-system-x86_64', mmdebstrap: '/usr/bin/mmdebstrap' })
  makeImage()
  const folder = makeFolder()
  const [sshPort, port] = [await findFreePort('127.0.0.1'), await findFreePort('127.0.0.1')]
  const image = join(images, 'disk')
  const disk = new VolatileDisk(openSync(image, 'r'), statSync(image).size)
  disk.listen(join(folder, 'disk'))
  let qemu: ChildProcess | undefined

  const config = `Host raspberrypi.local
    HostName 127.0.0.1
    Port ${sshPort}
    User pi
    IdentityFile ${join(images, 'key')}
    ControlPath ${join(folder, 'ssh')}
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    ConnectTimeout 10
    LogLevel ERROR
`
  writeFileSync(join(folder, 'config'), config)
  mkdirSync(join(folder, 'bin'))
  for (const name of ['ssh', 'scp']) {
    const script = `#!/bin/sh\nexec /usr/bin/${name} -F '${join(folder, 'config')}' "$@"\n`
    writeFileSync(join(folder, 'bin', name), script, { mode: 0o755 })
  }
  const env = { ...cleanEnvironment, PATH: `${join(folder, 'bin')}:${cleanEnvironment.PATH}` }

  const runHere = async (cwd: string, command: string, ...args: readonly string[]): Promise<Ran> => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const [out, errors, [code]] = await Promise.all([
      readText(child.stdout),
      readText(child.stderr),
      // The type of its arguments is not known.
      once(child, 'close') as Promise<[number | null]>,
    ])
    return { code, output: out + errors }
  }
  const attempt = (command: string): Promise<Ran> => runHere(folder, 'ssh', 'raspberrypi.local', command)

  /** One connection that all commands share, since each of their own would take the machine a second. */
  const connectSsh = async (): Promise<void> => {
    await waitUntil('the machine lets pi in', async () => {
      const { code } = await runHere(folder, 'ssh', '-fNM', 'raspberrypi.local')
      return code === 0 || undefined
    })
  }

  const start = async (): Promise<void> => {
    const drive = `driver=nbd,node-name=disk,server.type=unix,server.path=${join(folder, 'disk')}`
    const forwards = `hostfwd=tcp:127.0.0.1:${sshPort}-:22,hostfwd=tcp:127.0.0.1:${port}-:3000`
    const args = [
      ['-accel', 'tcg,thread=multi', '-smp', '2', '-m', '768', '-nodefaults', '-display', 'none'],
      ['-kernel', join(images, 'vmlinuz'), '-initrd', join(images, 'initrd.img')],
      // Under emulation a kernel that changes its own code while it boots panics now and then; it boots again by itself.
      ['-append', 'root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet mitigations=off panic=1'],
      ['-serial', `file:${join(folder, 'console')}`, '-device', 'virtio-rng-pci'],
      ['-blockdev', drive, '-device', 'virtio-blk-pci,drive=disk,write-cache=on'],
      ['-netdev', `user,id=net,restrict=on,${forwards}`, '-device', 'virtio-net-pci,netdev=net'],
    ]
    const run = (): void => {
      qemu = spawn('qemu-system-x86_64', args.flat(), { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
      // While the machine was off, a client may have taken one of its ports. It ends by itself then; a cut ends it by a signal.
      qemu.once('exit', (code) => void (code !== null && setTimeout(run, 500)))
    }
    run()
    await connectSsh()
  }

  return {
    url: `http://127.0.0.1:${port}`,
    start,
    async cut(isKept) {
      if (qemu === undefined) return
      const ended = once(qemu, 'exit')
      qemu.kill('SIGKILL')
      await ended
      disk.cut(isKept)
      await runHere(folder, 'ssh', '-O', 'exit', 'raspberrypi.local')
    },
    attempt,
    run: (command) => orThrow(command, attempt(command)),
    runAtHome: (command) => orThrow(command, runHere(project, 'bash', '-c', command)),
    async reboot() {
      const readBoot = (): Promise<string> => orThrow('boot', attempt('cat /proc/sys/kernel/random/boot_id'))
      const before = await readBoot()
      // It ends the connection, mostly before it has said so, and may take another one while it goes down.
      await attempt('sudo systemctl reboot')
      await waitUntil('the machine has booted again', async () => {
        await runHere(folder, 'ssh', '-O', 'exit', 'raspberrypi.local')
        await connectSsh()
        return (await readBoot()) !== before || undefined
      })
    },
  }
}
