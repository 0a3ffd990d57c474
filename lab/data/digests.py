"""Digests of the data sets, to recognise their samples in any order and from any source."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DIGESTS: Mapping[str, str] = MappingProxyType(
    {
        "german_towns": "ecfb2ec8822eb2f07c1e9644c2d2637e5f0c4a3aecbcbbbc1f0c38837ee206b6",
        "bavaria1": "4a9c015c67fc1c34a9d7da3be12ffeb7052eca27bb99b4415711432bcaac55c8",
        "bavaria2": "767565c909edcfa271c7f9e2e3bcaa17ae7236ab51018717ae536fab9ea63d03",
        "iris": "2745c56ad002e0f95ce37f636b312fb8659678188496b86368f4d7bacb697a32",
        "liver": "553f115fa26a9b4c8c33034be5cb5b6f4591d4fddfe302308f96e3c5f57565b1",
        "heart": "16243f5835cd13c8c5eea74377c0370e4979e8521dcb552ff753aca6186e4207",
        "breast_cancer": "2029b97b587b35ad7af43b2257d04d48a9a6ed2d2e42b9ace89594be36ff1141",
        "pima": "e8bb0dd54fc29fffcac4e43243e4f3a858e31d2538cb17f8a8f570884472a319",
        "congressional_voting": "14e92b4c6c073f9c68511411dc700b161d368f814701a6eaf10370bc3290d2a0",
        "ionosphere": "fee0ef20effee47631c5faccae70ab72e3855ca44c19a1a3f197c68a8d05b18e",
        "tsplib1060": "375ab84701fd0d3e24e74486cd347a61aef74c555b0f0f472582f06e16c35bf6",
        "tsplib3038": "f38e66de58c4f5063313bc1517e16d1f3dc4324fad730613130bfbe6af6fc254",
        "image_segmentation": "7d1f0864e5bb86fa405dd60500936b1edbd1c62d03286019c2cb427b4ac779dc",
        "page_blocks": "c32f905d281ac4bf62efa0fdad2d6a74eefe0d887e08306a86b159931063bd73",
        "pendigit": "9cef2c2b9bfa46b62edc8679aa44dd3f7b676e847485f3dbe210b9c03ff40d14",
        "letters": "30e5a3f4b2b95f9e1657114c3bb9f0b8df7926256ba3bd0d2c17806a16912662",
        "d15112": "6c0250603b06eb364c8c08ec2039c3620d95649a2848648c2ae6d0a35c437bf3",
        "pla85900": "38459df40864ebe96575ecfe90074fb94fbe916582f90c084e134da11ae4a302",
        "eeg_eye_state": "4b86611ecee2fe60256961e5b20c5a8175222739ed58a2875483899c75eb0400",
        "shuttle": "2d8026f96163e79ad897f60275f1b6f0fcd0be66cb34fdc1b1aefc8bcf87f129",
        "skin": "fada8fa5490ac28d884a9ed789f8e0c21c06bbf019813295ce311d7ca917fa3f",
    }
)
"""SHA-256 of the sorted rows (:func:`lab.data.verification.digest`), where it is known."""
