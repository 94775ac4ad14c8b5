"""Scenario texts that the tests of this folder start from."""

from __future__ import annotations

FULL = """\
version: 1
name: First campaign
description: One campaign, one week
seed: 3
clock: {start: 2026-01-05T01:00:00Z, end: 2026-01-12T00:00:00Z}
service: {name: Dialsim, publicUrl: "http://127.0.0.1:8400", sharedNumber: "020000000"}
engine:
  queueTimeout: 10m
  queueLimit: 40
  releaseInterval: 0
  order: freshFirst
  sharing: fifo
  callsPerSecond: 2
  webhookDelay: 1s
costs: {currency: THB, perDial: 0.10, perMinute: 1.20, billingIncrement: 60s}
voices:
  - {voiceKey: malee, displayName: Malee, gender: female, isNative: true}
organizations:
  - name: Acme
    id: 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10
    maxConcurrentCalls: 20
    callingAllowed: true
    apiKey: sim_0123456789abcdef0123456789abcdef
    callerIds: ["021000001", "021000002", "021000003"]
    sipAccounts:
      - id: 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a11
        callerIds: [{id: 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a12, number: "021000009"}]
    duplicateCallAlert: {window: 30d}
    retention: {audio: 30d, personalData: 90d, output: 365d}
    webhook:
      url: https://example.test/hook/secret
      receiver:
        latency: {dist: lognormal, mean: 300ms, sd: 200ms}
        errorRate: 0.01
        outages: [{from: 2026-01-06T03:00:00Z, to: 2026-01-06T03:20:00Z, mode: hang}]
    agents:
      - name: Reminder
        callerId: "021000001"
        voiceKey: malee
        paramsSchema: {amount: {type: number, required: true, description: Due, default: 0}}
        behaviour: default
        analysis:
          version: v2
          funnel: [{step: Greeted, share: 1.0}, {step: Promised, share: 0.35}]
          fields: {promise: {type: boolean, required: true, values: {true: 0.35, false: 0.65}}}
    campaigns:
      - name: January
        agent: Reminder
        recipients: {count: 200, agentParams: {amount: 100}, segments: {vip: 0.1, mass: 0.9}}
        schedule:
          startDateTime: 2026-01-05T02:00:00Z
          maxAttempts: 3
          retryInterval: 3600000
          callerIds: ["021000002", "021000003"]
        scheduledAt: 2026-01-05T01:30:00Z
      - name: Scripted
        agent: Reminder
        recipients:
          - tel: "0812345678"
            customerName: สมชาย ใจดี
            segment: vip
            agentParams: {amount: 12.5}
            script: noAnswer 25s; answered 5s 90s silent
            history:
              callAttempt: 1
              latestCallStatus: BUSY
              lastEndedAt: 2026-01-05T00:59:59.999Z
              lastCallerId: "021000002"
            id: 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a13
    timeline:
      - {at: 2026-01-05T05:00:00Z, action: pause, campaign: January}
      - {at: 2026-01-05T06:00:00Z, action: resume, campaign: January}
      - {at: 2026-01-05T07:00:00Z, action: setConcurrency, value: 30}
      - {at: 2026-01-05T07:00:00Z, action: setBehaviour, agent: Reminder, behaviour: holiday}
      - {at: 2026-01-05T07:00:00Z, action: setCallingAllowed, value: true}
      - {at: 2026-01-05T07:30:00Z, action: setWebhookUrl, url: https://example.test/hook/other}
      - at: 2026-01-05T08:00:00Z
        action: schedule
        campaign: Scripted
        body: {startDateTime: 2026-01-05T00:00:00Z, removeDuplicates: true}
      - {at: 2026-01-05T09:00:00Z, action: reanalyze, campaign: January, share: 0.5}
      - {at: 2026-01-05T09:30:00Z, action: setWebhookUrl, url: null}
      - {at: 2026-01-06T05:00:00Z, action: cancel, campaign: January}
      - {at: 2026-01-06T06:00:00Z, action: delete, campaign: January}
behaviours:
  default:
    outcomes: {answered: 0.35, noAnswer: 0.45, busy: 0.12, failed: 0.08}
    answeredOdds:
      byHour: {9: 0.8, 12: 0.7, 18: 1.4}
      byDay: {6: 1.2, 7: 1.1}
      byAttempt: [1.0, 0.8, 0.6]
      bySegment: {vip: 1.5, mass: 1}
      byCallerIdUse: {per1000: 0.95, recovery: 1d}
    people: {reachable: 0.9, concentration: 6}
    setupTime: {dist: uniform, low: 1s, high: 3s}
    ringTime:
      answered: {dist: lognormal, mean: 9s, sd: 5s, max: 30s}
      noAnswer: 30s
      busy: 1s
      failed: 0
    talkTime: {dist: lognormal, mean: 75s, sd: 60s, min: 2s, max: 10m}
    analysisDelay: 20s
    rates: {silent: 0.02, agentError: 0.005, analysisFailed: 0.005, lateResult: 0.5}
    lateResultDelay: 30m
  holiday:
    ringTime: {busy: 2s}
"""
"""Every key of the format, each with a good value."""

SMALL = """\
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    callerIds: ["021000001"]
    agents: [{name: Reminder}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {count: 10}
        schedule: {startDateTime: 2026-01-05T02:00:00Z}
"""
"""The smallest scenario that makes a call."""
